// The cases of the table that `make test` leaves out.
import './system-partition.test.ts';
