import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import test from 'ava';
import { spoolDeletion } from '../../cni-plugins/spool.ts';
import { createTempDir } from '../support/temp-dir.ts';

test('spoolDeletion: stores a DEL though a file stands in the place of the folder, which is moved aside', (t) => {
  const dir = createTempDir('spool');
  t.teardown(() => dir.close());
  writeFileSync(dir.join('deletions'), 'of another program');
  const sandbox = { containerId: 'c1', ifName: 'eth0', netns: '', podNamespace: '', podName: '', podUid: '' };
  const path = spoolDeletion(dir.join('deletions'), {
    ...{ sandbox, plugin: 1, network: 'net', writtenAtMs: 1, writtenAtBootMs: 1 },
  });
  t.is(dirname(path), dir.join('deletions'));
  t.is(JSON.parse(readFileSync(path, 'utf8')).containerId, 'c1');
  t.deepEqual(readdirSync(dir.path).sort(), ['deletions', 'deletions.aside-1']);
});
