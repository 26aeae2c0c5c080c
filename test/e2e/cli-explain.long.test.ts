// The cases of the table that `make test` leaves out.
import './cli-explain.test.ts';
