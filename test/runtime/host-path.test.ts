import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { createTempDir } from '../support/temp-dir.ts';

test('resolveHostPath: keeps links inside the root, absolute ones too', (t) => {
  const root = createTempDir('root');
  t.teardown(() => root.close());
  mkdirSync(root.join('run', 'netns'), { recursive: true });
  mkdirSync(root.join('var'));
  writeFileSync(root.join('run', 'netns', 'blue'), '');
  symlinkSync('/run', root.join('var', 'run'));
  symlinkSync('../run/netns', root.join('var', 'near'));
  const blue = root.join('run', 'netns', 'blue');
  t.is(resolveHostPath(root.path, '/run/netns/blue'), blue);
  t.is(resolveHostPath(root.path, '/var/run/netns/blue'), blue);
  t.is(resolveHostPath(root.path, '/var/near/blue'), blue);
  t.is(resolveHostPath(root.path, '/../../run/./netns//blue'), blue);
  t.is(resolveHostPath(root.path, '/run/netns/none'), root.join('run', 'netns', 'none'));
});

test('resolveHostPath: ends when links form a ring', (t) => {
  const root = createTempDir('root');
  t.teardown(() => root.close());
  symlinkSync('/b', root.join('a'));
  symlinkSync('/a', root.join('b'));
  t.regex(resolveHostPath(root.path, '/a'), /\/(a|b)$/);
});

test('resolveHostPath: leaves paths of /proc and of a root of our own alone', (t) => {
  t.is(resolveHostPath('/proc/1/root', '/proc/77/ns/net'), '/proc/77/ns/net');
  t.is(resolveHostPath('/', '/run/netns/blue'), '/run/netns/blue');
});
