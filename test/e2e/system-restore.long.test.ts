// The whole story; its beginning is what `make test` runs.
import './system-restore.test.ts';
