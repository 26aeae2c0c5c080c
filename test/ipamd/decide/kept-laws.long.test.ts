// The cases of the table that `make test` leaves out.
import './kept-laws.test.ts';
