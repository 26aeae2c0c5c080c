// The cases of the table that `make test` leaves out.
import './system-restore.test.ts';
