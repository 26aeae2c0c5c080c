// All rounds of what `make test` does less often.
import './webhook-memory.test.ts';
