// The cases of the table that `make test` leaves out.
import './system-definitions.test.ts';
