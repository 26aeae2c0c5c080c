import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import test from 'ava';
import { RECORD_FILE } from '../../../agent/install/install-record.ts';
import { openInstallation } from '../../../agent/install/installation.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';

test('openInstallation: takes over a node whose folder holds our executables and takes no record, as a read-only one', async (t) => {
  const dir = createTempDir('install-record');
  t.teardown(() => dir.close());
  for (const name of ['plugins', 'bin', 'conf']) mkdirSync(dir.join(name));
  for (const folder of ['plugins', 'bin']) {
    writeFileSync(dir.join(folder, 'tke-route-eni'), '#!/bin/sh\necho {}\n', { mode: 0o755 });
  }
  // Root may write anywhere but over a folder.
  mkdirSync(dir.join('bin', RECORD_FILE));
  const installation = openInstallation(
    {
      ...{ pluginDir: dir.join('plugins'), referencePluginDir: '', hostRoot: '/' },
      ...{ cniLauncher: 'auto', cniBinDir: dir.join('bin'), cniConfDir: dir.join('conf') },
      ...{ socket: '/run/a.sock', mtu: 0, portMapping: false, bandwidth: false, chainedPlugins: [] },
    },
    { log: silentLogger, release: '0.2.0', clock: systemClock },
  );
  await installation.ensureExecutables();
  await installation.ensureConflist(true);
  t.deepEqual(readdirSync(dir.join('conf')), ['10-tke-eni.conflist']);
});
