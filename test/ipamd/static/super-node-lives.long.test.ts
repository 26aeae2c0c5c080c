// The cases of the table that `make test` leaves out.
import './super-node-lives.test.ts';
