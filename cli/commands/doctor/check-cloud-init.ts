import { parse } from 'yaml';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import type { ConfFile } from './read-conf-files.ts';

/** Checks that cloud-init does not configure NICs that are attached later. */
export const CLOUD_INIT_CHECK: Check = {
  id: 'cloud-init',
  scope: 'cloud-init does not configure NICs when they are attached',
  finds: ['cloud-init-hotplug'],
  evaluate: ({ cloudInit }) =>
    whenKnown(cloudInit, ({ isInstalled, isDisabled, conf, hotplugRule }) => {
      if (!isInstalled) return skipped('cloud-init is not installed');
      if (isDisabled) return done([], ['it is disabled']);
      const network = lastOf(conf, (document) => get(document, 'network', 'config'));
      if (network?.value === 'disabled') return done([], [`${network.path} disables its network part`]);
      const when = lastOf(conf, (document) => get(document, 'updates', 'network', 'when'));
      const isConfigured = Array.isArray(when?.value) && when.value.includes('hotplug');
      if (!isConfigured && hotplugRule === undefined) return done([], ['no hot-plug']);
      const what = isConfigured
        ? `${when?.path} has hotplug in updates.network.when`
        : `${hotplugRule} calls cloud-init for each new NIC`;
      const fix = [
        "printf 'updates:\\n  network:\\n    when: [boot-new-instance]\\n' >/etc/cloud/cloud.cfg.d/99-tke-eni.cfg",
        ...(hotplugRule === undefined
          ? []
          : [
              'systemctl disable --now cloud-init-hotplugd.socket',
              // The file of the package returns with its next update, and has no effect without the socket.
              ...(hotplugRule.startsWith('/etc/') || hotplugRule.startsWith('/run/') ? [`rm ${hotplugRule}`] : []),
            ]),
        'udevadm control --reload',
      ];
      return done([finding('cloud-init-hotplug', { what, fix, subjects: [] })]);
    }),
};

/** Returns the value of the last file that contains it. */
function lastOf(
  conf: readonly ConfFile[],
  read: (document: unknown) => unknown,
): { readonly path: string; readonly value: unknown } | undefined {
  return conf
    .map(({ path, text }) => ({ path, value: read(documentOf(text)) }))
    .findLast(({ value }) => value !== undefined);
}

function documentOf(text: string): unknown {
  try {
    return parse(text, { logLevel: 'error' });
  } catch {
    // cloud-init skips such a file too.
    return undefined;
  }
}

function get(value: unknown, ...keys: readonly string[]): unknown {
  let at = value;
  for (const key of keys) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = Object.entries(at).find(([name]) => name === key)?.[1];
  }
  return at;
}
