// The cases of the table that `make test` leaves out.
import './cli-repair-careless.test.ts';
