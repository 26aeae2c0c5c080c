import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '../../support/wait-until.ts';
import type { SceneNode } from './scene-node.ts';

/** Holds the agent's repair up from outside, so that what a test breaks stays broken for a moment. */
export type RepairHold = {
  /** Put before the agent's command line. */
  readonly wrap: readonly string[];
  /** Resolves once a repair pass has begun and waits. Release it within ten seconds: then the agent gives up on nft. */
  hold(node: SceneNode): Promise<void>;
  /** Lets the pass go on. Idempotent. */
  release(): void;
};

/** Longest that the wrapper sleeps between two looks, seconds. */
const PAUSE_S = 0.02;

/**
 * A repair pass reads nftables first, by the nft tool. The agent runs in a mount namespace in which nft is a script: told to
 * hold, it lets the first listing wait, and all others through. So a pass stands still, and CHECK, which reads too, does not.
 * @param dir an empty folder
 */
export function createRepairHold(dir: string): RepairHold {
  mkdirSync(dir, { recursive: true });
  const [script, real, told, taken] = ['nft', 'nft.real', 'told', 'told/taken'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ];
  writeFileSync(real, '');
  writeFileSync(
    script,
    [
      '#!/bin/sh',
      `case "$*" in *list*) if mkdir ${taken} 2>/dev/null; then while [ -d ${told} ]; do sleep ${PAUSE_S}; done; fi;; esac`,
      `exec ${real} "$@"`,
      '',
    ].join('\n'),
  );
  chmodSync(script, 0o755);
  const enter = `mount --bind /usr/sbin/nft ${real} && mount --bind ${script} /usr/sbin/nft && exec "$@"`;
  const release = (): void => rmSync(told, { recursive: true, force: true });
  return {
    // Namespaces that are made later must appear in it: their mounts come from outside.
    wrap: ['unshare', '--mount', '--propagation', 'slave', 'sh', '-c', enter, 'sh'],
    hold: async (node) => {
      mkdirSync(told);
      // Any change in nftables, by anyone, calls for a pass.
      await node.netns.nft('add table inet test_trigger\ndelete table inet test_trigger\n');
      await waitUntil(() => existsSync(taken), { what: 'a repair pass that reads nftables' });
    },
    release,
  };
}
