// Light or dark: as the system says until the user says otherwise.

import { computed, effect, signal } from '@preact/signals';

import { readSetting, writeSetting } from '../i18n';

export type Theme = 'light' | 'dark';

const system = globalThis.matchMedia('(prefers-color-scheme: dark)');
const systemTheme = signal<Theme>(system.matches ? 'dark' : 'light');
system.addEventListener('change', (event) => {
  systemTheme.value = event.matches ? 'dark' : 'light';
});

const stored = readSetting('theme');
const chosen = signal<Theme | null>(stored === 'light' || stored === 'dark' ? stored : null);

export const theme = computed<Theme>(() => chosen.value ?? systemTheme.value);

export function toggleTheme(): void {
  chosen.value = theme.value === 'dark' ? 'light' : 'dark';
  writeSetting('theme', chosen.value);
}

export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value;
  });
}
