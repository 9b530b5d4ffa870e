"""Reading of the stored mail: lists, months, conversations, attachments, exports."""
