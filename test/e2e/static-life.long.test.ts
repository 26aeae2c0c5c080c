// The whole story; parts of it are what `make test` runs.
import './static-life.test.ts';
