import { type FSWatcher, watch } from 'node:fs';
import { fileIdentity } from './file-identity.ts';

/** A watch on a folder. */
export type FolderWatch = {
  /** Watches the folder that has the name now, if that is not the one watched already. Idempotent; never throws. */
  renew(): void;
  close(): void;
};

/**
 * Calls `changed` with the name of what appears, changes or disappears in a folder; null when the kernel does not say. The
 * folder need not exist yet. The only watch of the product: notifications may be missed (no inotify instance or watch is left,
 * the folder was replaced), so each caller polls as well, and calls `renew` with each poll.
 */
export function watchFolder(path: string, changed: (name: string | null) => void): FolderWatch {
  let current: { readonly watcher: FSWatcher; readonly identity: string } | undefined;
  const drop = (): void => {
    current?.watcher.close();
    current = undefined;
  };
  return {
    renew: () => {
      const identity = fileIdentity(path);
      if (identity === current?.identity) return;
      drop();
      if (identity === undefined) return;
      try {
        const watcher = watch(path, { persistent: false }, (_event, name) => changed(name));
        watcher.on('error', drop);
        current = { watcher, identity };
      } catch {
        // EMFILE, ENOSPC, ENOMEM, EACCES, …: the caller's poll finds the change a little later.
      }
    },
    close: drop,
  };
}
