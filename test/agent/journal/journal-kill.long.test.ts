// The cases of the table that `make test` leaves out.
import './journal-kill.test.ts';
