"""Reading of stored mail: lists, months, conversations, patches, attachments, exports."""
