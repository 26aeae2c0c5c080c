import test from 'ava';
import { failedFiles } from '../../tools/failed-files.ts';

const FILES = [
  '/w/test/e2e/soak.long.test.ts',
  '/w/test/e2e/cni/soak.long.test.ts',
  '/w/test/ipamd/storm.long.test.ts',
];

test('failedFiles: names each file once', (t) => {
  const titles = ['e2e › cni › soak.long › adds', 'e2e › cni › soak.long › a › b', 'ipamd › storm.long › is over'];
  t.deepEqual(failedFiles(titles, FILES), [FILES[1], FILES[2]]);
});

test('failedFiles: none where a title is of no file, or of several', (t) => {
  t.is(failedFiles(['e2e › gone.long › adds'], FILES), undefined);
  t.is(failedFiles(['soak.long › adds'], FILES), undefined);
  t.is(failedFiles(['a title alone'], FILES), undefined);
  t.deepEqual(failedFiles([], FILES), []);
});
