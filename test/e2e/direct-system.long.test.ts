// The whole story; its beginning is what `make test` runs.
import './direct-system.test.ts';
