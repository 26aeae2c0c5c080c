// The cases of the table that `make test` leaves out.
import './static-lives.test.ts';
