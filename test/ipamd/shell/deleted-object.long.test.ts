// The cases of the table that `make test` leaves out.
import './deleted-object.test.ts';
