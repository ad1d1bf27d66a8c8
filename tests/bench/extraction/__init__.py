"""Made-up documents with questions for numbers and excerpts, and what their answers are worth."""
