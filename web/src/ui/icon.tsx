// A few line icons, 16 × 16.

const kPaths: Record<string, string> = {
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  back: 'M9.5 3.5 5 8l4.5 4.5',
  forward: 'M6.5 3.5 11 8l-4.5 4.5',
  fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  peak: 'M1.5 13 6 4.5l2.5 5L10 7l4.5 6M4 2h4',
  box: 'M2.5 2.5h2m2 0h3m2 0h2v2m0 2v3m0 2v2h-2m-2 0h-3m-2 0h-2v-2m0-2v-3m0-2v-2',
  alert: 'M8 2 14.5 13.5h-13ZM8 6.5v3.5M8 11.6v.4',
  close: 'M4 4l8 8M12 4l-8 8',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z',
  link: 'M6.5 9.5l3-3M7 4.5l1.2-1.2a3 3 0 0 1 4.3 4.3L11.2 9M9 11.5l-1.2 1.2a3 3 0 0 1-4.3-4.3L4.8 7',
  keys: 'M2 4.5h12v7H2ZM4.5 7h.5M7.2 7h.5M10 7h.5M5.5 9.5h5',
  down: 'M3.5 6 8 10.5 12.5 6',
  up: 'M3.5 10 8 5.5l4.5 4.5',
  pin: 'M6 2h4l-.5 4.5 2 2h-7l2-2ZM8 8.500V14',
  target: 'M8 4.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7ZM8 1v3M8 12v3M1 8h3M12 8h3',
  export: 'M8 2.500V10M5 7.500 8 10.500l3-3M3 13.500h10',
  swap: 'M4 5.500h9M10.500 3 13 5.500 10.500 8M12 10.500H3M5.500 8 3 10.500 5.500 13',
  check: 'M3 8.500 6.500 12 13 4.500',
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="glyph" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor"
      stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round">
      <path d={kPaths[name] ?? ''} />
    </svg>
  );
}
