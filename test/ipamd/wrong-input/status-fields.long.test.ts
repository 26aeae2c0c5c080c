// The cases of the table that `make test` leaves out.
import './status-fields.test.ts';
