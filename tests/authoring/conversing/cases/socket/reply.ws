text ready
text more?
text sound
text done
