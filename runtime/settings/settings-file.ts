import { readRegularText } from '../read-regular-file.ts';

/** Largest settings file that is read, bytes. One with every setting has some kB. */
const MAX_BYTES = 1024 * 1024;

/**
 * Reads the text of a settings file: the `readFile` of each program.
 * @throws FileError when it is no regular file or too large; the file system's own error
 */
export function readSettingsText(path: string): string {
  return readRegularText(path, MAX_BYTES);
}
