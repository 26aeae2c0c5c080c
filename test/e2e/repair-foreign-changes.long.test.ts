// The cases of the table that `make test` leaves out.
import './repair-foreign-changes.test.ts';
