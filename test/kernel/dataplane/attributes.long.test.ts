// The cases of the table that `make test` leaves out.
import './attributes.test.ts';
