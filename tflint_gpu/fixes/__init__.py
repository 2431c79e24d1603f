"""The edits that checks ask for, made with libcst so that not another byte moves."""
