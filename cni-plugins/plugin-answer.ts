import { CNI_CODE } from '../agent/api/cni-code.ts';
import type { Plugins } from './plugin-calls.ts';
import { CniError } from './skel/error.ts';

/** Throws what a plugin answered when it failed. @param name What the message begins with. @throws CniError with the plugin's own code */
export function throwIfFailed({ code, stdout, stderr }: ReturnType<Plugins['run']>, name: string): void {
  if (code === 0) return;
  const error = errorOf(stdout);
  const said = error.msg ?? (`${stdout} ${stderr}`.trim().slice(0, MAX_SAID_CHARS) || 'nothing');
  throw new CniError(error.code ?? CNI_CODE.internal, `${name} failed: ${said}`, error.details);
}

const MAX_SAID_CHARS = 500;

/** Reads the error object of a plugin; nothing of what is none. */
function errorOf(stdout: string): { readonly code?: number; readonly msg?: string; readonly details?: string } {
  try {
    const { code, msg, details } = Object(JSON.parse(stdout)) as Readonly<Record<string, unknown>>;
    return {
      ...(typeof code === 'number' && code > 0 ? { code } : {}),
      ...(typeof msg === 'string' ? { msg } : {}),
      ...(typeof details === 'string' ? { details } : {}),
    };
  } catch {
    // A plugin that was killed prints half of it.
    return {};
  }
}
