printf '# Release 1.0\n\n- first release\n' > notes.md
