// The cases of the table that `make test` leaves out.
import './in-the-midst.test.ts';
