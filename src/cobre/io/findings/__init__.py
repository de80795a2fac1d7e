"""What is wrong with a case: problems, and the words for them."""
