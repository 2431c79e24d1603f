"""Rules 6xx: how the step is compiled and launched."""
