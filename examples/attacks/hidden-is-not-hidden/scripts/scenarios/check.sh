# The builder has never seen this line. It is the only place that knows the answer.
grep -q "seven wicker baskets under the third stair" agent/result.txt
