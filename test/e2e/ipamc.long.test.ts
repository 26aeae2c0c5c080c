// The cases of the table that `make test` leaves out.
import './ipamc.test.ts';
