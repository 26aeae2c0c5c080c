// 1,000 rules.
import './rule-calls.test.ts';
