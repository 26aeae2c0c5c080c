// The cases of the table that `make test` leaves out.
import './direct-life.test.ts';
