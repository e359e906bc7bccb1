echo "nobody to greet"
