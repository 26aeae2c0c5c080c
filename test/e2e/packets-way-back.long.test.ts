// The cases of the table that `make test` leaves out.
import './packets-way-back.test.ts';
