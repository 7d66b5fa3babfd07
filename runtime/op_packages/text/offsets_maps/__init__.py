"""Normal forms with the offsets that their bytes have in the text."""
