// The cases of the table that `make test` leaves out.
import './packets-third-links.test.ts';
