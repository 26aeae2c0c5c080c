// The cases of the table that `make test` leaves out.
import './cli-diff-healthy.test.ts';
