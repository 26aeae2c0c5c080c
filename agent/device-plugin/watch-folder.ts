import { type FSWatcher, watch } from 'node:fs';
import { fileIdentity } from './file-identity.ts';

/** A watch on a folder. */
type FolderWatch = {
  /** Watches the folder that has the name now, if that is not the one watched already. Idempotent. */
  renew(): void;
  close(): void;
};

/**
 * Calls `changed` when a name in the folder appears or disappears. The folder need not exist yet. Notifications may be
 * missed (no inotify instance left, the folder replaced), so callers have to poll as well.
 */
export function watchFolder(path: string, changed: () => void): FolderWatch {
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
        const watcher = watch(path, { persistent: false }, changed);
        watcher.on('error', drop);
        current = { watcher, identity };
      } catch {
        // No inotify instance left: the caller's poll finds the change a little later.
      }
    },
    close: drop,
  };
}
