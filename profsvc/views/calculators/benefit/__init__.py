"""The model of time and potential benefits."""
