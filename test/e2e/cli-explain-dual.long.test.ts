// The cases of the table that `make test` leaves out.
import './cli-explain-dual.test.ts';
