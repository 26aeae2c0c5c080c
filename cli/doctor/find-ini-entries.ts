/** One line of an ini file. */
export type IniEntry = { readonly section: string; readonly key: string; readonly value: string };

/**
 * Reads an ini file as systemd and GLib do: sections, `key=value`, comments with # or ;, a backslash at the end goes on
 * in the next line. Lines that are neither are left out.
 * @see systemd.syntax(7)
 */
export function findIniEntries(text: string): readonly IniEntry[] {
  const entries: IniEntry[] = [];
  let section = '';
  for (const raw of text.replaceAll(/\\\n/g, ' ').split('\n')) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue;
    if (line.startsWith('[') && line.endsWith(']')) {
      section = line.slice(1, -1);
      continue;
    }
    const at = line.indexOf('=');
    if (at > 0) entries.push({ section, key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() });
  }
  return entries;
}

/** Reads a boolean of systemd; undefined for what is none. @see systemd.syntax(7) */
export function iniBoolean(value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  if (/^(1|yes|y|true|t|on)$/i.test(value)) return true;
  return /^(0|no|n|false|f|off)$/i.test(value) ? false : undefined;
}
