// The cases of the table that `make test` leaves out.
import './repair-quiet.test.ts';
