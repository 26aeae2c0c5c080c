// The cases of the table that `make test` leaves out.
import './blocking-settings.test.ts';
