/** One entry of an INI file. */
export type IniEntry = { readonly section: string; readonly key: string; readonly value: string };

/**
 * Parses an INI file as systemd and GLib do: sections, `key=value`, comments with # or ;, and lines that a backslash
 * continues. Other lines are skipped.
 * @see systemd.syntax(7)
 */
export function parseIni(text: string): readonly IniEntry[] {
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

/** Parses a boolean of systemd; undefined for another value. @see systemd.syntax(7) */
export function iniBoolean(value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined;
  if (/^(1|yes|y|true|t|on)$/i.test(value)) return true;
  return /^(0|no|n|false|f|off)$/i.test(value) ? false : undefined;
}
