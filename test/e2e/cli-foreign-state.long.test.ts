// The cases of the table that `make test` leaves out.
import './cli-foreign-state.test.ts';
