// The cases of the table that `make test` leaves out.
import './cli-dump.test.ts';
